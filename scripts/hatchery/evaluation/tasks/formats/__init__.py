"""One file per format of labelled data; each gives a `TaskData` and names file and line of what is wrong."""
