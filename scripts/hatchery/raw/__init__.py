"""Sources of raw inputs: settings, downloads, data sets of the hub, and unpacking of archives."""
