"""Raw formats: one small file for each way in which corpora are handed out; `raw_texts` names them."""
