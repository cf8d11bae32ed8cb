package activities

// generation is how many rows one half of a recent remembers. It is far above
// what a process looks at within a lease, so nothing that somebody waits for is
// forgotten, and small enough to hold for good (two halves, some 10 MiB).
const generation = 1 << 16

// recent remembers things about rows in bounded memory: beyond a generation of
// newer rows, those that nobody has asked about since are forgotten. The zero
// value is ready. It is not safe for concurrent use.
type recent[V any] struct {
	young, old map[uint64]V
}

// get returns what is remembered, and keeps it for another generation.
func (r *recent[V]) get(id uint64) (V, bool) {
	if v, ok := r.young[id]; ok {
		return v, true
	}
	v, ok := r.old[id]
	if ok {
		r.set(id, v)
	}
	return v, ok
}

func (r *recent[V]) set(id uint64, v V) {
	if len(r.young) >= generation {
		r.old, r.young = r.young, nil
	}
	if r.young == nil {
		r.young = map[uint64]V{}
	}
	r.young[id] = v
}
