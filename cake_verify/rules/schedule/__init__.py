"""Rules of the schedule room: whether the schedule does its work once and uses what it declares."""
