# A registered operator hides the sum.
# status: ok
@torch.library.custom_op("mine::add", mutates_args=())
def hidden_sum(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.add(x, y)

def add(x, y):
    return hidden_sum(x, y)
