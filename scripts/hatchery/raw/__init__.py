"""Raw inputs: settings, downloads, data sets of the Hugging Face hub, and unpacking of archives."""
