# An endless loop in the cell.
# status: timeout
while True:
    pass
