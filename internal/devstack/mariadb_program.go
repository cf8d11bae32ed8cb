package devstack

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// maxSocketPath is sizeof(sockaddr_un.sun_path) - 1 on Linux (unix(7)). The
// BSDs have 103; the margin below covers them.
const maxSocketPath = 103

// mariadbPaths are where distributions put the server besides PATH (an
// ordinary user's PATH often has no sbin; Fedora uses libexec; Homebrew's
// prefixes for Mac).
var mariadbPaths = []string{
	"/usr/sbin", "/usr/libexec", "/usr/local/sbin", "/usr/local/bin", "/usr/bin",
	"/opt/homebrew/bin", "/opt/homebrew/opt/mariadb/bin", "/usr/local/opt/mariadb/bin",
}

// mariadbProgram is an installed server.
type mariadbProgram struct {
	path    string
	mariadb bool // or MySQL, whose options and ways to install differ
}

func (p mariadbProgram) name() string {
	if p.mariadb {
		return "MariaDB"
	}
	return "MySQL"
}

// findMariaDB looks for a server and asks it what it is: mysqld may be either.
func findMariaDB(ctx context.Context) (mariadbProgram, error) {
	path := findProgram("mariadbd", "mysqld")
	if path == "" {
		return mariadbProgram{}, fmt.Errorf("%w: neither mariadbd nor mysqld is on PATH or in %s; "+
			"install MariaDB (Debian, Ubuntu: apt-get install mariadb-server; Fedora: dnf install mariadb-server; "+
			"Mac: brew install mariadb)", ErrMissing, strings.Join(mariadbPaths, ", "))
	}
	out, err := exec.CommandContext(ctx, path, "--no-defaults", "--version").CombinedOutput()
	if err != nil {
		return mariadbProgram{}, fmt.Errorf("%s --version: %w: %s", path, err, lastLines(string(out), quotedLines))
	}
	return mariadbProgram{path: path, mariadb: strings.Contains(string(out), "MariaDB")}, nil
}

// findProgram returns the first of the names that is on PATH or in one of the
// usual places, names in order of preference.
func findProgram(names ...string) string {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
		for _, dir := range mariadbPaths {
			if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
				return path
			}
		}
	}
	return ""
}

// extraArguments are the options that only one of the two knows, and root's.
func (p mariadbProgram) extraArguments(ephemeral bool) []string {
	var args []string
	if ephemeral && p.mariadb {
		args = append(args, noSync[:]...)
	}
	if os.Geteuid() == 0 {
		// Both refuse to run as root unless told so by name.
		args = append(args, "--user=root")
	}
	if !p.mariadb {
		// MySQL packages compile in a directory that only their own set-up
		// creates, and open a second port for the X protocol.
		args = append(args, "--secure-file-priv=NULL", "--loose-mysqlx=OFF")
	}
	return args
}

func dataDir(dir string) string { return filepath.Join(dir, "mysql") }

// scratchDir is the server's own place for temporary tables. In a shared one,
// each server that starts deletes those of all others.
func scratchDir(dir string) string { return filepath.Join(dir, "tmp") }

// install creates the data directory when there is none. It works beside the
// final place and renames, so that an interrupted run leaves nothing that
// looks like data.
func (p mariadbProgram) install(ctx context.Context, cfg MariaDBConfig) error {
	data := dataDir(cfg.Dir)
	if _, err := os.Stat(data); err == nil {
		return nil
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	fmt.Fprintf(cfg.Log, "creating a %s data directory in %s\n", p.name(), data)
	// A name of its own: what an interrupted run left may still be written to
	// by a server that has not noticed its end.
	left, _ := filepath.Glob(data + ".new*")
	for _, dir := range left {
		_ = os.RemoveAll(dir)
	}
	fresh, err := os.MkdirTemp(cfg.Dir, filepath.Base(data)+".new")
	if err != nil {
		return diskError(err)
	}
	defer func() { _ = os.RemoveAll(fresh) }() // gone already when all went well
	cmd, err := p.installCommand(ctx, fresh)
	if err != nil {
		return err
	}
	out, err := runInGroup(cmd)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return installError(p.name(), err, string(out))
	}
	return diskError(os.Rename(fresh, data))
}

func installError(name string, err error, out string) error {
	if strings.Contains(out, "No space left on device") || strings.Contains(out, "Errcode: 28") {
		err = ErrDiskFull
	}
	return fmt.Errorf("creating the %s data directory: %w; it said:\n%s", name, err, lastLines(complaints(out), quotedLines))
}

// complaints are the lines of an output that name an error, or all of it: the
// installation's script ends with advice that says nothing about the cause.
func complaints(out string) string {
	var b strings.Builder
	for line := range strings.Lines(out) {
		if strings.Contains(line, "ERROR") {
			b.WriteString(line)
		}
	}
	if b.Len() == 0 {
		return out
	}
	return b.String()
}

// installCommand fills an empty directory beside the scratch one. MariaDB's
// script splits its arguments at spaces, so it works in the directory and sees
// no name of it; the server it starts goes to its data first and finds the
// scratch directory from there.
func (p mariadbProgram) installCommand(ctx context.Context, data string) (*exec.Cmd, error) {
	if !p.mariadb {
		args := append([]string{
			"--no-defaults", "--initialize-insecure", "--datadir=" + data, "--tmpdir=" + scratchDir(filepath.Dir(data)),
		}, p.extraArguments(false)...)
		return exec.CommandContext(ctx, p.path, args...), nil
	}
	script := findProgram("mariadb-install-db", "mysql_install_db")
	if script == "" {
		return nil, fmt.Errorf("%w: %s is there, but mariadb-install-db is not; reinstall mariadb-server", ErrMissing, p.path)
	}
	who, err := user.Current()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, script,
		"--no-defaults", "--datadir=.", "--tmpdir="+scratchDir(".."), "--user="+who.Username,
		"--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve",
		// The redo log keeps the size it is created with; 96 MB is the default.
		"--innodb-log-file-size=16M", noSync[0], noSync[1])
	cmd.Dir = data
	return cmd, nil
}

// noSync stops MariaDB from waiting for the disk: 29 waits instead of 961 in an
// installation, which beside other busy processes is a second instead of ten.
// Files written survive the end of the process, only a power cut loses them;
// an installation that was cut is a directory to delete, nothing more.
var noSync = [2]string{"--loose-debug-no-sync", "--innodb-flush-method=nosync"}

// socketPath returns where the server's socket goes: in dir, or in a directory
// of its own (second result, to be removed) when that path is too long for a
// socket address.
func socketPath(dir string) (socket, tempDir string, err error) {
	socket = filepath.Join(dir, "mariadb.sock")
	if len(socket) <= maxSocketPath {
		return socket, "", nil
	}
	if tempDir, err = os.MkdirTemp("", "waybill"); err == nil {
		socket = filepath.Join(tempDir, "mariadb.sock")
	}
	if err == nil && len(socket) > maxSocketPath {
		// TMPDIR itself may be too long.
		_ = os.RemoveAll(tempDir)
		tempDir, err = os.MkdirTemp("/tmp", "waybill")
		socket = filepath.Join(tempDir, "mariadb.sock")
	}
	return socket, tempDir, diskError(err)
}

// answers asks the server for its data directory: an answer over TCP as root
// is what everybody else needs too, and the path tells our server from one
// that took the port.
func (m *MariaDB) answers(ctx context.Context) error {
	cfg, err := mysql.ParseDSN(m.Root())
	if err != nil {
		return err
	}
	cfg.Logger = &mysql.NopLogger{} // refusals are expected here
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer func() { _ = db.Close() }()
	var data string
	if err := db.QueryRowContext(ctx, "SELECT @@datadir").Scan(&data); err != nil {
		return err
	}
	if !sameDir(data, dataDir(m.cfg.Dir)) {
		return fmt.Errorf("%w: another server with data in %s answers on %s", ErrPortInUse, data, m.Addr())
	}
	return nil
}

// sameDir compares directories as the file system does: through links.
func sameDir(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}
