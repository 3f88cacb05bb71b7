"""The offline model: its marks, its way through real folders, its face as a chat model."""
