package acceptance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"waybill/test/scenario"
)

// The helper plays a host and its network: the process itself is the network,
// where the servers are reached, and one thread of it is the host, in a network
// namespace of its own that nothing but a veth pair leads out of. That thread
// runs waybill and has the receivers' listener, which the link does not concern.
// SIGUSR1 takes the link down, SIGUSR2 brings it up.
const (
	helperHost = "host"
	// hostSpec carries the orders (namespaceOrders, as JSON).
	hostSpec = "WAYBILL_ACCEPTANCE_HOST"
	// Both ends of the link are of TEST-NET-1, which is nobody's.
	networkAddress, hostAddress = "192.0.2.1", "192.0.2.2"
	hostReceiver                = "127.0.0.1:18080" // in the host's namespace only
	// ownershipEnds is how long a process may send after the last answer of its
	// lock session: 3 s before the server's wait_timeout of 10 s.
	ownershipEnds = 7 * time.Second
)

func init() { helpers[helperHost] = runHost } //nolint:gochecknoinits // a test binary's table, by platform

// entry is one line of what the helper prints: a request that has begun or
// ended (answered, or cut off by waybill), or the link that has gone down.
type entry struct {
	What, Path, Body string
	At               time.Time
}

// ip runs iproute2 in the namespace of the calling thread.
func ip(args string) error {
	said, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", args, err, said)
	}
	return nil
}

func runHost() int {
	var orders namespaceOrders
	err := json.Unmarshal([]byte(os.Getenv(hostSpec)), &orders)
	if err == nil {
		err = hostLife(orders, &diary{to: json.NewEncoder(os.Stdout)})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "helper:", err)
		return 1
	}
	return 0
}

// diary prints moments as they come.
type diary struct {
	mu sync.Mutex
	to *json.Encoder
}

func (d *diary) note(what, path, body string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_ = d.to.Encode(entry{What: what, Path: path, Body: body, At: time.Now()})
}

// ServeHTTP answers 200 at once, but on /hang not before the client has left.
func (d *diary) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	d.note("begun", r.URL.Path, string(body))
	if r.URL.Path == "/hang" {
		<-r.Context().Done()
	}
	d.note("ended", r.URL.Path, string(body))
}

// hostLife is the network's side: it ends with waybill, which it tells to end
// when it is told itself. Both sides keep their threads, as namespaces are theirs.
func hostLife(orders namespaceOrders, d *diary) error {
	runtime.LockOSThread()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2)
	started, ended := make(chan *os.Process, 1), make(chan error, 1)
	there, linked := make(chan int, 1), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		err := unix.Unshare(unix.CLONE_NEWNET)
		there <- unix.Gettid()
		<-linked
		if err == nil {
			err = hostSide(orders, d, started)
		}
		ended <- err
	}()
	if err := networkSide(orders, <-there); err != nil {
		return err
	}
	close(linked)
	turns := map[os.Signal]string{syscall.SIGUSR1: "down", syscall.SIGUSR2: "up"}
	for {
		select {
		case err := <-ended:
			return err
		case s := <-signals:
			if turns[s] == "" {
				_ = (<-started).Signal(s)
			} else if err := ip("link set network " + turns[s]); err != nil {
				return err
			}
			d.note(turns[s], "", "")
		}
	}
}

// networkSide lays the link to the host's namespace and leads to the servers.
func networkSide(orders namespaceOrders, host int) error {
	err := errors.Join(
		ip(fmt.Sprint("link add network type veth peer name host netns ", host)),
		ip("addr add "+networkAddress+"/30 dev network"), ip("link set network up"))
	for local, socket := range orders.Forward {
		listener, failed := net.Listen("tcp", local)
		if failed != nil {
			return errors.Join(err, failed)
		}
		go forward(listener, "unix", socket)
	}
	return err
}

// hostSide runs waybill to its end, with the receivers on loopback beside it.
func hostSide(orders namespaceOrders, d *diary, started chan<- *os.Process) error {
	err := errors.Join(raiseLoopback(nil), ip("addr add "+hostAddress+"/30 dev host"), ip("link set host up"))
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", orders.Listen)
	if err != nil {
		return err
	}
	go func() { _ = http.Serve(listener, d) }()
	waybill := exec.Command(orders.Waybill, "serve")
	waybill.Stderr = os.Stderr
	waybill.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := waybill.Start(); err != nil {
		return err
	}
	started <- waybill.Process
	return waybill.Wait()
}

// entries are those of one kind so far, on every path or on one.
func entries(p *scenario.Process, what, path string) (found []entry) {
	for text := range strings.Lines(p.Out.String()) {
		var m entry
		if json.Unmarshal([]byte(text), &m) == nil && m.What == what && (path == "" || m.Path == path) {
			found = append(found, m)
		}
	}
	return found
}

// startHost runs a site's serve on a host of its own.
func startHost(t *testing.T, s *scenario.Site) *scenario.Process {
	t.Helper()
	orders := namespaceOrders{Listen: hostReceiver, Waybill: program.Path(t), Forward: map[string]string{}}
	env := s.With(map[string]string{"WAYBILL_HERALD_DELIVERY_TIMEOUT": "25s"}) // only the loss ends the POST
	for _, server := range []string{s.MariaDB.Addr(), s.TemporalAddress} {
		_, port, _ := net.SplitHostPort(server)
		local := net.JoinHostPort(networkAddress, port)
		orders.Forward[local] = outlet(t, server)
		for name, value := range env {
			env[name] = strings.ReplaceAll(value, server, local)
		}
	}
	spec, err := json.Marshal(orders)
	if err != nil {
		t.Fatal(err)
	}
	env[helperVariable], env[hostSpec] = helperHost, string(spec)
	return scenario.Start(t, "unshare", env, append(strings.Fields(unshareNetwork()), "--", os.Args[0])...)
}

// aim has the hooks call receivers on the host, or else those outside.
func (c *crowd) aim(t *testing.T, inside bool) {
	t.Helper()
	for i, h := range c.hooks {
		uri := c.receiver.URL("status200", fmt.Sprint("crowd-", i))
		if inside {
			uri = "http://" + hostReceiver + "/"
		}
		if err := c.SetHookURI(t.Context(), h.PHID, uri); err != nil {
			t.Fatal(err)
		}
	}
}

// The link of the host that runs Waybill goes down under load; its receivers it
// can still reach. It is silent when its ownership has expired, before the
// server frees the locks and Phorge delivers the rest. Then the link comes back.
func TestAHostWithoutItsLinkIsSilentBeforeItsLocksAreFree(t *testing.T) {
	t.Parallel()
	needsNamespace(t)
	needsLink(t)
	c := newCrowd(t, scenario.NewSite(t, &program), 3)
	c.aim(t, true)
	slow := hook(t, c.Site, "http://"+hostReceiver+"/hang")
	c.rows = append(c.rows, queue(t, c.Site, slow, task(t, c.Site), forever))
	host := startHost(t, c.Site)
	scenario.Until(t, patience, "a POST is under way", func() bool { return len(entries(host, "begun", "/hang")) == 1 })
	c.queue(t, 40)
	scenario.Until(t, patience, "the load is under way", func() bool { return len(entries(host, "begun", "/")) > 10 })
	host.Signal(syscall.SIGUSR1)
	scenario.Until(t, patience, "the link is down", func() bool { return len(entries(host, "down", "")) == 1 })
	c.aim(t, false)
	if err := c.SetHookURI(t.Context(), slow.PHID, c.receiver.URL("status200", "slow")); err != nil {
		t.Fatal(err)
	}
	c.play(t)
	c.silent(t, host)
	c.aim(t, true)
	before, outside := len(entries(host, "begun", "")), len(c.receiver.Requests())
	host.Signal(syscall.SIGUSR2)
	scenario.Until(t, 2*patience, "Waybill has its locks again", func() bool { return c.phorge.Held(t, c.hooks[0].PHID) })
	await(t, c.Site, queue(t, c.Site, c.hooks[0], task(t, c.Site), forever).PHID, "sent", "okay")
	if n := len(entries(host, "begun", "")); n != before+1 || len(c.receiver.Requests()) != outside {
		t.Errorf("%d requests on the host for one new row after the return", n-before)
	}
	if code := host.Stop(t); code != 0 {
		t.Errorf("the stop ended with %d", code)
	}
}

// silent checks when the host's requests ended, and what of them was repeated.
func (c *crowd) silent(t *testing.T, host *scenario.Process) {
	t.Helper()
	down, begun, outside := entries(host, "down", "")[0].At, entries(host, "begun", ""), c.receiver.Requests()
	ends := append(begun, entries(host, "ended", "")...)
	for _, m := range ends {
		if after := m.At.Sub(down); after > ownershipEnds || !m.At.Before(outside[0].At) {
			t.Errorf("%s %s %v after the link went down, Phorge's first call %v after", m.Path, m.What, after, outside[0].At.Sub(down))
		}
	}
	if cut := entries(host, "ended", "/hang"); len(cut) != 1 || cut[0].At.Before(down) || len(ends) != 2*len(begun) {
		t.Errorf("%d of %d moments are of ends; the POST under way: %v", len(ends)-len(begun), len(ends), cut)
	}
	bodies := ""
	for _, m := range begun {
		bodies += m.Body
	}
	repeats := 0
	for _, r := range c.rows {
		requests := strings.Count(bodies, r.ObjectPHID)
		for _, q := range outside {
			requests += bytes.Count(q.Raw, []byte(r.PHID))
		}
		if status := row(t, c.Site, r.PHID).Status; requests == 0 || status != "sent" {
			t.Errorf("a row is %s after %d requests", status, requests)
		}
		repeats += requests - 1
	}
	if most := len(c.hooks) + 1; repeats > most {
		t.Errorf("%d repeats, want what was in flight at most: one for each of %d hooks", repeats, most)
	}
	t.Logf("%d requests on the host, %d outside, %d repeats", len(begun), len(outside), repeats)
}

// needsLink skips where no veth pair can be made: iproute2 or the kernel's part
// of it is missing.
func needsLink(t *testing.T) {
	t.Helper()
	probe := append(strings.Fields(unshareNetwork()), "ip", "link", "add", "one", "type", "veth", "peer", "name", "other")
	if said, err := exec.CommandContext(t.Context(), "unshare", probe...).CombinedOutput(); err != nil {
		t.Skipf("no veth pair can be made here (iproute2 and the kernel's veth are needed): %v: %s", err, said)
	}
}
