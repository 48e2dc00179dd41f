package kv

// Stats are what a Store has counted since it was made.
type Stats struct {
	Keys      int    // now, with those that expired and were not yet swept
	WithTTL   int    // of those, with a TTL
	Bytes     int64  // now, of Options.MemoryLimit
	Limit     int64  // Options.MemoryLimit
	Hits      uint64 // reads that found their key
	Misses    uint64 // reads that did not
	Evictions uint64 // keys dropped for room
	Expired   uint64 // keys dropped at the end of their TTL
	Refused   uint64 // writes that did not fit
	Locks     int    // now held or waited for
	Waiters   int    // calls of Wait that wait now
}

// Stats returns the counts.
func (s *Store) Stats() Stats {
	s.lockMu.Lock()
	locks := s.locks.count
	s.lockMu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stats
	st.Keys, st.WithTTL = s.table.count, s.table.volatile
	st.Bytes, st.Limit = s.table.used(), s.opts.MemoryLimit
	st.Locks, st.Waiters = locks, s.waiters
	return st
}

// AddReads counts reads that other processes made in the shared memory.
func (s *Store) AddReads(hits, misses uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Hits += hits
	s.stats.Misses += misses
}

// Touch tells the eviction policy that other processes read keys in the shared
// memory. They are named by the hash that layout.go describes; one that is no
// key's does nothing.
func (s *Store) Touch(hashes []uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.table.mem
	for _, h := range hashes {
		hash := uint32(h)
		for r := m.bucket(s.table.bucketOf(hash)); r != 0; r = m.next(r) {
			if m.hash(r) == hash {
				s.touch(r)
			}
		}
	}
}
