"""How fast a kernel can be on a card, predicted from counts, and how fast it is, measured."""
