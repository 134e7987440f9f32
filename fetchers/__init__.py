"""The pages that citations point at: `Page`s read live (`http`) or from a frozen folder (`snapshot`)."""
