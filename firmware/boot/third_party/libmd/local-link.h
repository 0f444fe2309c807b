/* Ours, not libmd's: without libmd_alias() sha2.c defines every function itself. */
