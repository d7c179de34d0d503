# Script in an error's text.
# status: ok
def add(x, y):
    raise ValueError("<script>alert(1)</script><img src=x onerror=alert(2)>")
