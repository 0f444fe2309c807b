"""The MAC array of the pe-mesh boards (boards/pe-mesh.md, section 3), written against the plug-in interface alone."""
