import resource, time, sys
import pytest
sys.path.insert(0,'/work/main')
def cpu():
    r=resource.getrusage(resource.RUSAGE_SELF); return r.ru_utime, r.ru_stime
def test_idle(lab):
    out=[]
    for p in (0.1,0.5):
        lab.cloud.configure(poll_interval=p)
        time.sleep(1)
        a=cpu(); time.sleep(6); b=cpu()
        out.append((p,'idle cpu/s', (b[0]-a[0])/6, (b[1]-a[1])/6))
    for p in (0.1,0.5):
        lab.cloud.configure(poll_interval=p)
        a=cpu(); t=time.time()
        for i in range(6): lab.passes('c1')
        b=cpu()
        out.append((p,'boot', (time.time()-t)/6,(b[0]-a[0])/6, (b[1]-a[1])/6))
    print(out)
    open('/tmp/idle.out','w').write('\n'.join(map(str,out)))
