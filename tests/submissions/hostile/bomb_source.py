# Text that takes the parser long: brackets, and a power tower.
# status: timeout crash ok memory
deep = "(" * 150 + ")" * 150
try:
    eval(deep)
except BaseException:
    pass
number = 9 ** 9 ** 9
