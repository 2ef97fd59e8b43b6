//! File systems that several kernels may use at once, where our locks cannot be trusted.
//!
//! A table of the kernel's numbers. Anything else counts as local, so that an unknown local file system is not
//! refused. FUSE is refused completely, because nothing distinguishes a local one from sshfs.

use std::fmt;

const SHARED: &[(u32, &str)] = &[
    (0x6969, "NFS"),
    (0x517B, "SMB"),
    (0xFE53_4D42, "SMB2"),
    (0xFF53_4D42, "CIFS"),
    (0x0102_1997, "9p"),
    (0x6573_5546, "FUSE or virtiofs"),
    (0x6A65_6A63, "Docker Desktop's shared folders"),
    (0x5346_414F, "AFS"),
    (0x6B41_4653, "AFS"),
    (0x00C3_6400, "Ceph"),
    (0x7375_7245, "Coda"),
    (0x564C, "NCP"),
    (0x0116_1970, "GFS2"),
    (0x7461_636F, "OCFS2"),
    (0x0BD0_0BD0, "Lustre"),
    (0x4750_4653, "GPFS"),
    (0x1983_0326, "BeeGFS"),
    (0x786F_4256, "VirtualBox's shared folders"),
    (0xBACB_ACBC, "VMware's shared folders"),
    (0x7C7C_6673, "Parallels' shared folders"),
];

/// A file system that several kernels may use at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedFs(&'static str);

impl SharedFs {
    /// The one with this number.
    pub(crate) fn of(magic: u32) -> Option<Self> {
        let row = SHARED.iter().find(|(number, _)| *number == magic)?;
        Some(Self(row.1))
    }
}

impl fmt::Display for SharedFs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_known_and_local_ones_are_not() {
        assert_eq!(SharedFs::of(0x6969), Some(SharedFs("NFS")));
        assert_eq!(
            SharedFs::of(0x6573_5546),
            Some(SharedFs("FUSE or virtiofs"))
        );
        for local in [0xEF53, 0x0102_1994, 0x9123_683E, 0x5846_5342, 0x794C_7630] {
            assert_eq!(SharedFs::of(local), None, "{local:x}");
        }
    }
}
