package acceptance

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"waybill/internal/egress/rawsink"
	"waybill/test/scenario"
)

// The helper runs `waybill serve` in a network namespace of its own, so that
// no test aims at an address outside this machine: what a deny list fails to
// deny goes nowhere. The databases and Temporal are reached through Unix
// sockets, which do not belong to a network namespace.
const (
	helperNamespace = "namespace"
	// namespaceSpec carries the helper's orders as JSON.
	namespaceSpec = "WAYBILL_ACCEPTANCE_NAMESPACE"
)

func init() { helpers[helperNamespace] = runInNamespace } //nolint:gochecknoinits // a test binary's table, by platform

// namespaceOrders say what the helper does.
type namespaceOrders struct {
	Addresses []netip.Addr      // to have, beside loopback
	Listen    string            // the receiver's address
	Forward   map[string]string // local address → Unix socket
	Waybill   string            // the program
}

// isolated is a `waybill serve` in a namespace, with a receiver beside it.
type isolated struct{ process *scenario.Process }

// requests ends everything and returns what the receiver got.
func (i isolated) requests(t *testing.T) []rawsink.Request {
	t.Helper()
	if code := i.process.Stop(t); code != 0 {
		t.Errorf("waybill in the namespace ended with %d", code)
	}
	var got []rawsink.Request
	if err := json.Unmarshal([]byte(i.process.Out.String()), &got); err != nil {
		t.Fatalf("the helper printed %q: %v", i.process.Out, err)
	}
	return got
}

// isolate starts a site's serve in a namespace that has the given addresses.
func isolate(t *testing.T, s *scenario.Site, changes map[string]string, addresses ...string) isolated {
	t.Helper()
	orders := namespaceOrders{Listen: "0.0.0.0:18080", Waybill: program.Path(t), Forward: map[string]string{
		s.MariaDB.Addr():  outlet(t, s.MariaDB.Addr()),
		s.TemporalAddress: outlet(t, s.TemporalAddress),
	}}
	for _, a := range addresses {
		orders.Addresses = append(orders.Addresses, netip.MustParseAddr(a))
	}
	spec, err := json.Marshal(orders)
	if err != nil {
		t.Fatal(err)
	}
	env := s.With(changes)
	env[helperVariable], env[namespaceSpec] = helperNamespace, string(spec)
	// unshare becomes the helper, which so is the process that is signalled.
	// Without being root a user namespace gives the right.
	args := append(strings.Fields(unshareNetwork()), "--", os.Args[0])
	return isolated{scenario.Start(t, "unshare", env, args...)}
}

func unshareNetwork() string {
	if os.Getuid() == 0 {
		return "--net"
	}
	return "--user --map-root-user --net"
}

// canIsolate reports whether this machine lets tests have network namespaces.
func canIsolate() error {
	args := append(strings.Fields(unshareNetwork()), "true")
	said, err := exec.Command("unshare", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("unshare: %w: %s", err, said)
	}
	return nil
}

// outlet is a Unix socket that leads to a TCP address outside the namespace.
func outlet(t *testing.T, address string) string {
	t.Helper()
	// Not t.TempDir, whose names are too long for a socket.
	dir, err := os.MkdirTemp("", "wb")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close(); _ = os.RemoveAll(dir) })
	go forward(listener, "tcp", address)
	return path
}

// forward joins every connection to one of its own, until the listener closes.
func forward(from net.Listener, network, address string) {
	for {
		in, err := from.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial(network, address)
		if err != nil {
			in.Close()
			continue
		}
		for _, pair := range [][2]net.Conn{{in, out}, {out, in}} {
			go func() {
				_, _ = io.Copy(pair[0], pair[1])
				pair[0].Close()
				pair[1].Close()
			}()
		}
	}
}

// runInNamespace is the helper's life: it ends with waybill, which it tells to
// end when it is told itself, and prints what the receiver got.
func runInNamespace() int {
	got, err := namespaceLife()
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(got)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "helper:", err)
		return 1
	}
	return 0
}

func namespaceLife() ([]rawsink.Request, error) {
	var orders namespaceOrders
	if err := json.Unmarshal([]byte(os.Getenv(namespaceSpec)), &orders); err != nil {
		return nil, err
	}
	if err := raiseLoopback(orders.Addresses); err != nil {
		return nil, fmt.Errorf("loopback: %w", err)
	}
	for local, socket := range orders.Forward {
		listener, err := net.Listen("tcp", local)
		if err != nil {
			return nil, err
		}
		go forward(listener, "unix", socket)
	}
	sink, err := rawsink.Start(rawsink.Config{Addr: orders.Listen})
	if err != nil {
		return nil, err
	}
	waybill := exec.Command(orders.Waybill, "serve")
	waybill.Stderr = os.Stderr
	waybill.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := waybill.Start(); err != nil {
		return nil, err
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	go func() { _ = waybill.Process.Signal(<-signals) }()
	err = waybill.Wait()
	return sink.Requests(), err
}

// raiseLoopback brings lo up, which a new namespace has down and without any
// route, and gives it more addresses.
func raiseLoopback(addresses []netip.Addr) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	up, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	up.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, up); err != nil {
		return err
	}
	for i, a := range addresses {
		alias, err := unix.NewIfreq(fmt.Sprintf("lo:%d", i+1))
		if err == nil {
			err = alias.SetInet4Addr(a.AsSlice())
		}
		if err == nil {
			err = unix.IoctlIfreq(fd, unix.SIOCSIFADDR, alias)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
