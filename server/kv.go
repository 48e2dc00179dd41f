package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"ephpm/kv"
)

// stores are the Stores of all sites, and the files that they are saved to.
type stores struct {
	config KVConfig
	all    []*siteStore
	log    *slog.Logger
}

// A siteStore is the Store of one site in memory that workers may map: file has
// its pages, is open for reading only, and cannot change its size.
type siteStore struct {
	*kv.Store
	site   string
	file   *os.File
	memory []byte
}

// openStores makes the stores of a configuration, by the names of newSites, and
// loads what was saved. A file that cannot be loaded is kept aside.
func openStores(c Config, log *slog.Logger) (*stores, error) {
	s := &stores{config: c.KV, log: log}
	var names []string
	if c.Server.DocumentRoot != "" {
		names = append(names, c.rootName())
	}
	for _, sc := range c.Sites {
		names = append(names, sc.Names[0])
	}
	for _, name := range names {
		store, err := openStore(name, c.KV)
		if err != nil {
			s.close()
			return nil, fmt.Errorf("site %s: %w", name, err)
		}
		s.all = append(s.all, store)
		s.load(store)
	}
	return s, nil
}

func openStore(site string, c KVConfig) (*siteStore, error) {
	file, memory, err := shareMemory("ephpm-kv", kv.MappingSize(int64(c.MemoryLimit)))
	if err != nil {
		return nil, err
	}
	s := &siteStore{site: site, file: file, memory: memory}
	s.Store, err = kv.New(kv.Options{
		Memory:        memory,
		MemoryLimit:   int64(c.MemoryLimit),
		Policy:        kv.Policy(c.EvictionPolicy),
		Compression:   kv.Compression(c.Compression),
		CompressLevel: c.CompressionLevel,
		CompressMin:   int(c.CompressionMinSize),
	})
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *siteStore) close() {
	if s.Store != nil {
		s.Store.Close()
	}
	_ = unix.Munmap(s.memory) // cannot fail for what Mmap returned
	_ = s.file.Close()        // nothing was written through it
}

// shareMemory maps memory of zeros and returns a file to map it elsewhere, for
// reading only. Pages need memory when they are written.
func shareMemory(name string, size int64) (*os.File, []byte, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, nil, fmt.Errorf("shared memory: %w", err)
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written through it
	if err := unix.Ftruncate(fd, size); err != nil {
		return nil, nil, fmt.Errorf("shared memory of %d bytes: %w", size, err)
	}
	// Whoever could cut it off would kill the front.
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL); err != nil {
		return nil, nil, fmt.Errorf("seal shared memory: %w", err)
	}
	memory, err := unix.Mmap(fd, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_NORESERVE)
	if err != nil {
		return nil, nil, fmt.Errorf("map shared memory of %d bytes: %w", size, err)
	}
	file, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		_ = unix.Munmap(memory) // the first error counts
		return nil, nil, fmt.Errorf("shared memory: %w", err)
	}
	return file, memory, nil
}

// of returns the store of a site.
func (s *stores) of(site string) *kv.Store {
	for _, store := range s.all {
		if store.site == site {
			return store.Store
		}
	}
	return nil
}

// sweepEvery is how often keys that have expired are looked for.
const sweepEvery = 100 * time.Millisecond

// run sweeps and saves the stores until ctx ends.
func (s *stores) run(ctx context.Context) {
	sweep := time.NewTicker(sweepEvery)
	defer sweep.Stop()
	var save <-chan time.Time
	if s.config.Snapshot != "" && s.config.SnapshotInterval > 0 {
		ticker := time.NewTicker(time.Duration(s.config.SnapshotInterval))
		defer ticker.Stop()
		save = ticker.C
	}
	saved := make(chan struct{}, 1)
	saved <- struct{}{} // none is being written
	defer func() { <-saved }()
	for {
		select {
		case <-ctx.Done():
			return
		case <-sweep.C:
			for _, store := range s.all {
				store.Sweep()
			}
		case <-save:
			select {
			case <-saved:
				go func() { // run waits for it
					s.save(ctx)
					saved <- struct{}{}
				}()
			default: // the last one is still being written
			}
		}
	}
}

// path is the file of a site's store.
func (s *stores) path(site string) string {
	return filepath.Join(s.config.Snapshot, url.PathEscape(site)+".kv")
}

// load loads a site's store.
func (s *stores) load(store *siteStore) {
	if s.config.Snapshot == "" {
		return
	}
	path := s.path(store.site)
	n, err := store.Load(path)
	var broken *kv.SnapshotError
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err == nil:
		s.log.Info("loaded the key-value store", "site", store.site, "file", path, "keys", n)
	case errors.As(err, &broken), errors.Is(err, kv.ErrFull):
		aside := fmt.Sprintf("%s.%d", path, time.Now().Unix())
		if e := os.Rename(path, aside); e != nil {
			aside = path
		}
		s.log.Error("the key-value store could not be loaded whole; its file is kept", "site", store.site, "keys", n, "file", aside, "err", err)
	default:
		s.log.Error("the key-value store could not be loaded", "site", store.site, "file", path, "err", err)
	}
}

// save saves all stores. When ctx ends, the rest keep the files that they have.
func (s *stores) save(ctx context.Context) {
	if s.config.Snapshot == "" {
		return
	}
	for _, store := range s.all {
		start := time.Now()
		n, err := store.Save(ctx, s.path(store.site))
		switch {
		case err == nil:
			s.log.Debug("saved the key-value store", "site", store.site, "keys", n, "took", time.Since(start))
		case ctx.Err() == nil:
			s.log.Error("the key-value store could not be saved", "site", store.site, "file", s.path(store.site), "err", err)
		}
	}
}

// close frees the memory of all stores. Nobody may use them any more.
func (s *stores) close() {
	for _, store := range s.all {
		store.close()
	}
}
