package devstack

import "syscall"

// freeMB is what an ordinary user may still write below dir, and whether the
// file system says.
func freeMB(dir string) (uint64, bool) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil || fs.Bsize <= 0 {
		return 0, false
	}
	return fs.Bavail * uint64(fs.Bsize) / (1 << 20), true
}
