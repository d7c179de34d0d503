"""The fast kernels beside the vendor's, and the ladders that lead to them, measured in turn."""
