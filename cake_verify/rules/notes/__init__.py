"""Rules of the notes room: remarks that never change a verdict."""
