package devstack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

// mariadbStart bounds a start, crash recovery included. A healthy one takes
// about a second; a slow disk with a large redo log may need most of this.
const mariadbStart = 60 * time.Second

// startTries is how often a start with a port of our own choosing is repeated
// when somebody else took that port between choosing and listening.
const startTries = 3

// MariaDBConfig says where a private server keeps its data.
type MariaDBConfig struct {
	// Dir holds everything: data in Dir/mysql (kept between runs), socket, pid
	// file, lock file and log. Required; created when missing.
	Dir string
	// Port on 127.0.0.1; 0 takes that of the last start in Dir, or a free one
	// where that is taken.
	Port int
	// Log receives a line per step; nil for silence. The server's own output
	// goes to Dir/mariadb.log; that of the run before is in Dir/mariadb.log.1.
	Log io.Writer
	// Ephemeral gives up durability at a power cut for speed: nothing waits
	// for the disk. A killed server still loses nothing.
	Ephemeral bool
	// OwnClock gives the server a clock of its own, for tests: SetClock moves it.
	// Linux with libfaketime only.
	OwnClock bool
}

// MariaDB is a running private server. It is used by one goroutine for
// starting and stopping; DSN, Root and Addr may be called from any.
type MariaDB struct {
	cfg     MariaDBConfig
	server  mariadbProgram
	lock    *os.File
	socket  string
	tempDir string // the socket's, when Dir is too long for one
	port    int
	proc    *process
	clock   clock
}

// StartMariaDB starts a private MariaDB or MySQL server and waits until it
// answers. Errors wrap ErrMissing, ErrInUse, ErrPortInUse, ErrDiskFull,
// ErrExited or ErrNotReady.
func StartMariaDB(ctx context.Context, cfg MariaDBConfig) (*MariaDB, error) {
	server, err := findMariaDB(ctx)
	if err != nil {
		return nil, err
	}
	// The server is told absolute paths: it changes its working directory.
	if cfg.Dir, err = filepath.Abs(cfg.Dir); err != nil {
		return nil, err
	}
	if cfg.Log == nil {
		cfg.Log = io.Discard
	}
	lock, err := lockDir(cfg.Dir, "mariadb")
	if err != nil {
		return nil, err
	}
	m := &MariaDB{cfg: cfg, server: server, lock: lock}
	if err := m.prepare(ctx); err != nil {
		m.release()
		return nil, err
	}
	if err := m.launch(ctx); err != nil {
		m.release()
		return nil, err
	}
	return m, nil
}

// prepare makes the data directory, keeps the last run's log and finds a place
// for the socket.
func (m *MariaDB) prepare(ctx context.Context) error {
	if err := KeepLog(m.LogFile()); err != nil {
		return err
	}
	if err := os.MkdirAll(scratchDir(m.cfg.Dir), 0o700); err != nil {
		return diskError(err)
	}
	if err := m.server.install(ctx, m.cfg); err != nil {
		return err
	}
	var err error
	m.socket, m.tempDir, err = socketPath(m.cfg.Dir)
	if err != nil {
		return err
	}
	if m.cfg.OwnClock {
		if m.clock, err = newClock(filepath.Join(m.cfg.Dir, "clock")); err != nil {
			return err
		}
	}
	return diskError(os.WriteFile(m.initFile(), []byte(rootSQL), 0o600))
}

// rootSQL runs at each start, before the server accepts connections. It gives
// root the same door everywhere: MariaDB since 10.4 and MySQL packages of
// distributions differ in whom they let in how (unix_socket, auth_socket,
// localhost only). One statement per line: MySQL's init_file wants that.
const rootSQL = `CREATE USER IF NOT EXISTS 'root'@'127.0.0.1' IDENTIFIED BY '';
GRANT ALL PRIVILEGES ON *.* TO 'root'@'127.0.0.1' WITH GRANT OPTION;
`

func (m *MariaDB) initFile() string { return filepath.Join(m.cfg.Dir, "init.sql") }

// LogFile is where the server writes what it has to say.
func (m *MariaDB) LogFile() string { return filepath.Join(m.cfg.Dir, "mariadb.log") }

// launch starts the process on the configured port, or on free ones until one
// is really free.
func (m *MariaDB) launch(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, mariadbStart)
	defer cancel()
	for try := 1; ; try++ {
		err := m.choosePort(ctx)
		if err == nil {
			err = m.run(ctx)
		}
		if err == nil {
			fmt.Fprintf(m.cfg.Log, "%s ready on %s\n", m.server.name(), m.Addr())
			m.rememberPort()
			return nil
		}
		if m.cfg.Port != 0 || try == startTries || !errors.Is(err, ErrPortInUse) {
			return err
		}
		m.port = 0
	}
}

// choosePort keeps the port of an earlier launch: a restarted server must be
// found where it was.
func (m *MariaDB) choosePort(ctx context.Context) (err error) {
	if m.port == 0 {
		m.port = m.cfg.Port
	}
	if m.port == 0 {
		m.port, err = m.lastPort(ctx)
		return err
	}
	return checkPort(ctx, m.port, m.server.name())
}

func (m *MariaDB) portFile() string { return filepath.Join(m.cfg.Dir, "mariadb.port") }

// lastPort is the port of the last start in the directory, where it is free
// still: what has been told the address then finds the server there again.
func (m *MariaDB) lastPort(ctx context.Context) (int, error) {
	text, _ := os.ReadFile(m.portFile())
	port, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err == nil && port > 0 && checkPort(ctx, port, m.server.name()) == nil {
		return port, nil
	}
	return freePort(ctx)
}

// rememberPort is a courtesy to the next start: its failure costs nothing else.
func (m *MariaDB) rememberPort() {
	_ = os.WriteFile(m.portFile(), []byte(strconv.Itoa(m.port)+"\n"), 0o600)
}

func (m *MariaDB) run(ctx context.Context) error {
	proc, err := command{path: m.server.path, args: m.arguments(), dir: m.cfg.Dir, logFile: m.LogFile(), env: m.clock.environment()}.start()
	if err != nil {
		return fmt.Errorf("%s: %w", m.server.path, diskError(err))
	}
	if err := proc.watch(ctx, m.answers); err != nil {
		proc.kill()
		return startError(m.server.name(), err, m.LogFile())
	}
	m.proc = proc
	return nil
}

func (m *MariaDB) arguments() []string {
	flush := 1
	if m.cfg.Ephemeral {
		flush = 2
	}
	args := []string{
		"--no-defaults", // must be first
		"--datadir=" + dataDir(m.cfg.Dir),
		"--tmpdir=" + scratchDir(m.cfg.Dir),
		"--socket=" + m.socket,
		"--pid-file=" + filepath.Join(m.cfg.Dir, "mariadb.pid"),
		"--init-file=" + m.initFile(),
		"--bind-address=" + loopback,
		"--port=" + strconv.Itoa(m.port),
		"--skip-name-resolve",
		"--skip-log-bin",
		"--character-set-server=utf8mb4",
		"--default-storage-engine=InnoDB",
		"--innodb-flush-log-at-trx-commit=" + strconv.Itoa(flush),
		// Small on purpose: many of these run beside each other in tests.
		"--innodb-buffer-pool-size=64M",
		"--performance-schema=OFF",
		// Tests hold dozens of connections per process, several processes each.
		"--max-connections=400",
	}
	return append(args, m.server.extraArguments(m.cfg.Ephemeral)...)
}

// DSN is the go-sql-driver data source name of a database, for root. It need
// not exist; the empty name selects none.
func (m *MariaDB) DSN(db string) string {
	c := mysql.NewConfig()
	c.User, c.Net, c.Addr, c.DBName = "root", "tcp", m.Addr(), db
	return c.FormatDSN()
}

// Root is the DSN of root without a database.
func (m *MariaDB) Root() string { return m.DSN("") }

// Addr is host:port. It stays the same over Restart.
func (m *MariaDB) Addr() string { return loopback + ":" + strconv.Itoa(m.port) }

// Signal sends the server a signal: SIGSTOP and SIGCONT make it hang and go on.
func (m *MariaDB) Signal(s os.Signal) error { return m.proc.signal(s) }

// Exited is closed when the server process has ended, for whatever reason.
func (m *MariaDB) Exited() <-chan struct{} { return m.proc.done }

// Stop ends the server cleanly and gives the directory free. When ctx ends
// first the server is killed and the error says so.
func (m *MariaDB) Stop(ctx context.Context) error {
	err := m.proc.stop(ctx, m.server.name())
	m.release()
	return err
}

// Halt ends the server cleanly and keeps the directory for Restart.
func (m *MariaDB) Halt(ctx context.Context) error { return m.proc.stop(ctx, m.server.name()) }

// Kill ends the server like a crash (SIGKILL), waits until it is gone and
// keeps the directory for Restart. Stop afterwards is allowed and needed.
func (m *MariaDB) Kill() { m.proc.kill() }

// Restart starts a server that was killed or halted again, on its port and
// data. It fails when the server still runs.
func (m *MariaDB) Restart(ctx context.Context) error {
	if !m.proc.exited() {
		return fmt.Errorf("%w: %s still runs", ErrInUse, m.server.name())
	}
	return m.launch(ctx)
}

func (m *MariaDB) release() {
	if m.tempDir != "" {
		_ = os.RemoveAll(m.tempDir)
	}
	_ = m.lock.Close()
}
