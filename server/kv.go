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
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"ephpm/kv"
)

// stores are the Stores of all sites, and the files that they are saved to. Its
// methods may be called from any goroutine.
type stores struct {
	config KVConfig
	log    *slog.Logger

	mu  sync.Mutex // guards the following
	all []*siteStore
}

// A siteStore is the Store of one site in memory that workers may map: file has
// its pages, is open for reading only, and cannot change its size.
type siteStore struct {
	*kv.Store
	site   string
	number int // 1 + its index in stores.shared; 0: it is not there
	file   *os.File
	users  int // calls of stores.open without one of remove; guarded by stores.mu

	saving sync.Mutex // held by who writes its snapshot
}

// openStores makes the stores of the sites that a configuration names, by the
// names of newSites, and loads what was saved. A file that cannot be loaded is
// kept aside.
func openStores(c Config, log *slog.Logger) (*stores, error) {
	s := &stores{config: c.KV, log: log}
	shared := 0
	add := func(name string, own bool) error {
		store, err := s.open(name)
		if err != nil {
			return fmt.Errorf("site %s: %w", name, err)
		}
		if !own {
			shared++
			store.number = shared
		}
		return nil
	}
	var err error
	if c.Server.DocumentRoot != "" {
		err = add(c.rootName(), false)
	}
	for _, sc := range c.Sites {
		if err == nil {
			err = add(sc.Names[0], sc.own())
		}
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// open returns the store of a site, which it makes if there is none. It stays until
// remove was called as often.
func (s *stores) open(site string) (*siteStore, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, store := range s.all {
		if store.site == site {
			store.users++
			return store, nil
		}
	}
	store, err := openStore(site, s.config)
	if err != nil {
		return nil, err
	}
	s.load(store)
	store.users = 1
	s.all = append(s.all, store)
	return store, nil
}

// remove saves the store of a site that is gone, and forgets it, unless a site of
// that name has come again meanwhile: its clients stay. Those of a store that goes
// are cut by cut, before it is saved.
func (s *stores) remove(ctx context.Context, site string, cut func(*kv.Store)) {
	s.mu.Lock()
	i := slices.IndexFunc(s.all, func(store *siteStore) bool { return store.site == site })
	if i < 0 {
		s.mu.Unlock()
		return
	}
	store := s.all[i]
	store.users--
	unused := store.users == 0
	s.mu.Unlock()
	if !unused {
		return
	}
	cut(store.Store)
	s.saveOne(ctx, store)
	s.mu.Lock()
	if unused = store.users == 0; unused {
		s.all = slices.DeleteFunc(s.all, func(other *siteStore) bool { return other == store })
	}
	s.mu.Unlock()
	if unused {
		store.close()
	}
}

// now returns the stores that there are now.
func (s *stores) now() []*siteStore {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

// shared are the memories of those stores that the workers of all sites map. A site
// that comes later, and one that has workers of its own, is not among them.
func (s *stores) shared() (files []*os.File) {
	for _, store := range s.now() {
		if store.number > 0 {
			files = append(files, store.file)
		}
	}
	return files
}

func openStore(site string, c KVConfig) (*siteStore, error) {
	file, memory, err := shareMemory("ephpm-kv", kv.MappingSize(int64(c.MemoryLimit)))
	if err != nil {
		return nil, err
	}
	store, err := kv.New(kv.Options{
		Memory:        memory,
		MemoryLimit:   int64(c.MemoryLimit),
		Policy:        kv.Policy(c.EvictionPolicy),
		Compression:   kv.Compression(c.Compression),
		CompressLevel: c.CompressionLevel,
		CompressMin:   int(c.CompressionMinSize),
	})
	if err != nil {
		unmap(memory)
		_ = file.Close() // nothing was written through it
		return nil, err
	}
	// A request of a site that is gone may still hold its store.
	runtime.AddCleanup(store, unmap, memory)
	return &siteStore{Store: store, site: site, file: file}, nil
}

func unmap(memory []byte) { _ = unix.Munmap(memory) } // cannot fail for what Mmap returned

// close lets go of a store. Its memory goes with its last user.
func (s *siteStore) close() {
	s.Store.Close()
	_ = s.file.Close() // nothing was written through it
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
	memory, err := unix.Mmap(fd, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_NORESERVE)
	if err != nil {
		return nil, nil, fmt.Errorf("map shared memory of %d bytes: %w", size, err)
	}
	// Whoever could cut it off would kill the front, and a file that is open for
	// reading can be opened again through /proc. F_SEAL_FUTURE_WRITE would forbid
	// that to everybody, but also that the store gives memory back (MADV_REMOVE), so
	// the mode does: no other user can, and one's own can reach the front anyway.
	const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
	_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals)
	if err == nil {
		err = unix.Fchmod(fd, 0o400)
	}
	if err != nil {
		_ = unix.Munmap(memory) // the first error counts
		return nil, nil, fmt.Errorf("seal shared memory: %w", err)
	}
	file, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		_ = unix.Munmap(memory) // the first error counts
		return nil, nil, fmt.Errorf("shared memory: %w", err)
	}
	return file, memory, nil
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
			for _, store := range s.now() {
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
	for _, store := range s.now() {
		s.saveOne(ctx, store)
	}
}

func (s *stores) saveOne(ctx context.Context, store *siteStore) {
	if s.config.Snapshot == "" {
		return
	}
	store.saving.Lock() // a site may be removed while all are saved
	defer store.saving.Unlock()
	start := time.Now()
	n, err := store.Save(ctx, s.path(store.site))
	switch {
	case err == nil:
		s.log.Debug("saved the key-value store", "site", store.site, "keys", n, "took", time.Since(start))
	case ctx.Err() == nil:
		s.log.Error("the key-value store could not be saved", "site", store.site, "file", s.path(store.site), "err", err)
	}
}

// close lets go of all stores.
func (s *stores) close() {
	for _, store := range s.now() {
		store.close()
	}
}
