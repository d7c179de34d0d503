# An exception that cannot be shown.
# status: infrastructure crash
class Odd(BaseException):
    def __str__(self):
        raise self
    __repr__ = __str__

def add(x, y):
    raise Odd()
