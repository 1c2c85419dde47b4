"""The text of a module: how it is loaded, and the errors that its author sees."""
