# All lines are forged: sixteen cases that claim to be right, then a clean exit.
# status: crash ok
import json, os
for case in range(17):
    os.write(3, json.dumps({"exercise": "02.add", "case": case, "config": 0, "trace": "{}"}).encode() + b"\n")
os.write(3, b'{"done": "02.add"}\n')
os._exit(0)
