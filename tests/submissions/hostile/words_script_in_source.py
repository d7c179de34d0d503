# Script in the source itself.
# status: ok
PAGE = "</pre></div><script>alert(1)</script><svg onload=alert(2)>"
# </script><script>alert(3)</script>

def add(x, y):
    return PAGE
