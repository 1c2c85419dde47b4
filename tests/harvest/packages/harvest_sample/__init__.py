"""A package whose modules have the forms that `nereid harvest` meets. Written for its test."""
