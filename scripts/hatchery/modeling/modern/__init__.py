"""The family "modern": plain pre-norm transformers with rotary positions."""
