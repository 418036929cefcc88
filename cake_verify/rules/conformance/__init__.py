"""Rules of the conformance room: what the target has and allows."""
