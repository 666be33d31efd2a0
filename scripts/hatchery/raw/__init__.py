"""Where raw inputs come from: settings, downloads, data sets of the hub, and unpacking what came."""
