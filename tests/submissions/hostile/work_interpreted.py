# Triton's interpreter and NumPy in the body.
# status: ok
import os
os.environ["TRITON_INTERPRET"] = "1"
import numpy as np

def add(x, y):
    return torch.from_numpy(np.add(x.float().numpy(), y.float().numpy())).to(x.dtype)
