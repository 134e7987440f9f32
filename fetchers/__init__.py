"""What a citation points at: `Page`s read live (`http`) or from a frozen folder (`snapshot`)."""
