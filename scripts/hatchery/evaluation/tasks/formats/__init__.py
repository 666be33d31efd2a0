"""One file per format of labelled data; each gives records with their places, and names what is wrong with a file."""
