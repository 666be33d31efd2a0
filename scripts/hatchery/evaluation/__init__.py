"""What a pretrained model knows: minimal-pair scoring without training, and fine-tuning on labelled tasks."""
