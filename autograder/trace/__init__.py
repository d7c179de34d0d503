"""One call of a host function as data: recorded on the student's side, replayed on the judge's."""
