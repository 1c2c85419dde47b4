import sys, re, statistics
from forked import *
tracer.warm()
refs=References()
folders=[a for a in sys.argv[1:] if not a.startswith('-')] or ['tests/tasks','tests/honest']
only=[a[1:] for a in sys.argv[1:] if a.startswith('-')]
times=[];inner=[]
bad=0;n=0
for folder in folders:
    for p in sorted((ROOT/folder).glob('*.py')):
        if only and not any(o in p.name for o in only): continue
        n+=1
        if folder.endswith('tasks'):
            a,t=refs.answer(p)
        else:
            m=re.search(r'^\s*reference:\s*(\S+)',p.read_text(errors='replace'),re.M)
            if not m: print('no ref',p); continue
            r=(p.parent/m.group(1)).resolve()
            ri=refs.inputs(r)
            if ri is None: print('REFBAD',p.name,word(refs.answer(r)[0])[:300]); continue
            a,t=forked(request(p,'ModelNew',ri))
        if 'trace' not in a: bad+=1; print(p.name, f'{t*1e3:.0f}ms', word(a)[:700])
        else:
            times.append(t*1e3); inner.append(a['trace']['seconds']*1e3)
            if '-v' in sys.argv or only: print(p.name, f'{t*1e3:.1f}ms', word(a))
print(n,'files',bad,'bad', 'wall ms median %.1f p90 %.1f; inner median %.1f p90 %.1f min %.1f'%(statistics.median(times),sorted(times)[len(times)*9//10],statistics.median(inner),sorted(inner)[len(inner)*9//10],min(inner)))
