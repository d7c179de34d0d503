# expect: interface values
add_kernel = 3
