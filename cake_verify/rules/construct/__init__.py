"""Rules of the construct room: what elaboration refuses: syntax, names, declarations, types of arguments."""
