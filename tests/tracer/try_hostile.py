import sys, re
from forked import *
tracer.warm()
refs=References()
skip=('bomb','escape','forge','loop')
for p in sorted((ROOT/'tests/hostile').glob('*.py')):
    if p.name.startswith(skip): continue
    if len(sys.argv)>1 and not any(a in p.name for a in sys.argv[1:]): continue
    text=p.read_text(errors='replace')
    m=re.search(r'^\s*reference:\s*(\S+)',text,re.M); v=re.search(r'^\s*verdict:\s*(.+)',text,re.M)
    if not m: continue
    r=(p.parent/m.group(1)).resolve(); ri=refs.inputs(r)
    a,t=forked(request(p,'ModelNew',ri),20)
    got={'trace':'trace','untraceable':'Untraceable','malformed':'Malformed','compile_failed':'CompileFailed','killed':'killed'}.get(next(iter(a)),'odd')
    want=v.group(1).strip()
    ok = (got in want) or (got=='trace' and not (want in('Untraceable','Malformed','CompileFailed')))
    if got=='trace' and want in ('Untraceable','Malformed','CompileFailed'): ok=False
    if not ok or len(sys.argv)>1: print(p.name,'WANT',want,'GOT',word(a)[:600])
