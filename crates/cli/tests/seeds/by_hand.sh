# Test describe
echo '{"type":"describe"}' | python3 examples/tools/python/tool.py

# Test a call
printf '{"type":"describe"}\n{"type":"call","call_id":"c1","params":{"numbers":[1,2,3,4,5]}}\n' \
  | python3 examples/tools/python/tool.py
