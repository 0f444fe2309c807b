/* Ours, not libmd's: there is nothing to configure. */
