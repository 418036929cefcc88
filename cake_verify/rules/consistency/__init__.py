"""Rules of the consistency room: representation along the dataflow, from tensor map to view to instruction."""
