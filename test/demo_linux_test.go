package acceptance

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"waybill/internal/devstack"
	"waybill/internal/devstack/stacktest"
	"waybill/test/scenario"
)

// demo is `waybill dev` in a folder of its own, on ports of its own. Linux only:
// elsewhere its servers outlive a kill.
type demo struct {
	dir string
	env map[string]string
}

func newDemo(t *testing.T) *demo {
	t.Helper()
	stacktest.NeedsServers(t)
	bin, err := devstack.FindTemporal(os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	// A name with a space, as folders of people have.
	dir := filepath.Join(t.TempDir(), "a folder")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	d := &demo{dir: dir, env: map[string]string{
		"WAYBILL_TEMPORAL_BIN": bin, "WAYBILL_HERALD_RETRY_BACKOFF": "3s",
		"WAYBILL_HERALD_BREAKER_THRESHOLD": "1000", // no rest for the hook that is broken
		// A lease of 8 s: shorter ones are raised to what they must cover.
		"WAYBILL_HERALD_DELIVERY_TIMEOUT": "2s", "WAYBILL_HERALD_WRITE_ALLOWANCE": "1s", "WAYBILL_HERALD_CLAIM_LEASE": "8s",
	}}
	for _, name := range []string{"DEMO_TEMPORAL_PORT", "DEMO_UI_PORT", "DEMO_API_PORT", "DEMO_RECEIVER_PORT"} {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		d.env[name] = strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	}
	return d
}

// start runs it through a shell, which changes the folder and is gone then.
func (d *demo) start(t *testing.T) *scenario.Process {
	t.Helper()
	return d.shell(t, `exec "$1" dev`)
}

// shell runs a script in the demo's folder; $1 is the program.
func (d *demo) shell(t *testing.T, script string) *scenario.Process {
	t.Helper()
	return scenario.Start(t, "/bin/sh", d.env, "-c", `cd "$0" && `+script, d.dir, program.Path(t))
}

// hooks runs `waybill hooks` as somebody does who has read the demo's settings.
func (d *demo) hooks(t *testing.T, arguments string) {
	t.Helper()
	p := d.shell(t, `. .waybill/env && exec "$1" hooks `+arguments)
	if code := p.Wait(t, patience); code != 0 {
		t.Fatalf("hooks %s: %d: %s", arguments, code, p.Log.Tail(5))
	}
}

// file reads a file of the demo's.
func (d *demo) file(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(d.dir, ".waybill", name))
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

func (d *demo) order(t *testing.T, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), program.Path(t), append([]string{"dev", "demo"}, args...)...)
	c.Dir = d.dir
	said, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v: %s", args, err, said)
	}
	return string(said)
}

// shows waits until the terminal shows a text it has not shown before.
func shows(t *testing.T, p *scenario.Process, before, text string) {
	t.Helper()
	scenario.Until(t, 2*patience, func() string { return text + " in\n" + p.Out.Tail(20) }, func() bool {
		return strings.Contains(strings.TrimPrefix(p.Out.String(), before), text)
	})
}

func TestADemoIsDrivenFromAnotherTerminalAndRecoversFromAKill(t *testing.T) {
	t.Parallel()
	d := newDemo(t)
	p := d.start(t)
	shows(t, p, "", "  delivered   200             1")

	if said := d.order(t, "enqueue", "60"); said != "queued for healthy: 60\n" {
		t.Errorf("enqueue said %q", said)
	}
	shows(t, p, "", " in this second: ")
	d.order(t, "break", "healthy", "--with", "418")
	shows(t, p, "", "healthy               WILL RETRY  418")
	before := p.Out.String()
	d.order(t, "heal")
	shows(t, p, before, "healthy               delivered   200             2")
	if said := d.order(t, "pause", "slow", "--reason", "lunch"); !strings.Contains(said, "slow is paused") {
		t.Errorf("pause said %q", said)
	}
	if said := d.order(t, "resume", "slow"); said != "slow is called again\n" {
		t.Errorf("resume said %q", said)
	}
	d.hooks(t, "pause --all")
	if said := d.order(t, "resume", "slow"); !strings.Contains(said, "slow is still paused with all hooks") {
		t.Errorf("resume under a pause of all hooks said %q", said)
	}
	d.hooks(t, "resume --all")

	settings := d.file(t, "env")
	p.Kill()
	p = d.start(t)
	shows(t, p, "", "A process of Waybill was killed or cut off")
	if now := d.file(t, "env"); now != settings {
		t.Errorf("a terminal with the settings\n%sis stale, they are\n%s", settings, now)
	}
	if !strings.Contains(d.file(t, "serve.log.1"), "418") {
		t.Error("the log of the run that was killed is gone")
	}
	d.file(t, "mariadb/mariadb.log.1")
	d.file(t, "temporal/temporal.log.1")
	shows(t, p, "", "  delivered   200 ")
	if code := p.Stop(t); code != 0 || !strings.Contains(p.Out.String(), "Stopped. Data is kept") {
		t.Errorf("ended with %d:\n%s", code, p.Out.Tail(20))
	}
	if _, err := os.Stat(filepath.Join(d.dir, ".waybill", "dev.sock")); err == nil {
		t.Error("the socket is left behind")
	}
}

// `waybill dev | head`: what is under way ends in order, and no socket is left
// that would make the next start believe in a kill.
func TestADemoWhoseOutputIsClosedStopsInOrder(t *testing.T) {
	t.Parallel()
	d := newDemo(t)
	p := d.shell(t, `{ "$1" dev; echo $? >.waybill/code; } | head -n 24`)
	p.Wait(t, 4*patience)
	if code := d.file(t, "code"); code != "0\n" {
		t.Errorf("ended with %s%s", code, p.Log.Tail(20))
	}
	if _, err := os.Stat(filepath.Join(d.dir, ".waybill", "dev.sock")); err == nil {
		t.Error("the socket is left behind")
	}
}

func TestADemoSaysFirstWhichServerHasEnded(t *testing.T) {
	t.Parallel()
	d := newDemo(t)
	p := d.start(t)
	shows(t, p, "", "  delivered   200             1")
	pid, err := strconv.Atoi(strings.TrimSpace(d.file(t, "mariadb/mariadb.pid")))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	code := p.Wait(t, 4*patience)
	_, after, found := strings.Cut(p.Out.String(), "MariaDB has ended by itself")
	if code != 1 || !found || !strings.Contains(after, "Stopping: ") {
		t.Errorf("ended with %d:\n%s", code, p.Out.Tail(20))
	}
}
