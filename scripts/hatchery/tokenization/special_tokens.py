"""The special tokens, their fixed ids, and which of them raw text may spell out.

Every tokenizer of this house has these seven at these ids (the order of the tokenizers published with LTG-BERT and
ELC-BERT), so that models, maskers and scorers need not ask which id means what.
"""

import re

UNKNOWN, CLS, SEP, PAD, MASK, PAR, TAB = "[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]", "[PAR]", "[TAB]"

SPECIAL_TOKENS = (UNKNOWN, CLS, SEP, PAD, MASK, PAR, TAB)
SPECIAL_IDS = {token: index for index, token in enumerate(SPECIAL_TOKENS)}

# Converters write these two into documents: `[UNK]` for unclear speech (BNC), `[TAB]` for an indented line (BabyLM).
# The others are structure. A page that explains BERT may contain the letters "[MASK]"; when documents are encoded
# these stay letters, so that no text can forge a paragraph end, a padding or a mask.
TEXT_MARKERS = (UNKNOWN, TAB)

SPECIAL_PATTERN = re.compile("|".join(re.escape(token) for token in SPECIAL_TOKENS))
