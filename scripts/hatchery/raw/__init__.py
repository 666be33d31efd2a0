"""Raw inputs: settings, downloads from the web and from the Hugging Face hub, unpacking of archives, and
registration.
"""
