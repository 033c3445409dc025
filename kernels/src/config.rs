use std::fmt;

use indexmap::IndexMap;
use tilewright::prelude::{DType, Kernel, Target};
use tilewright::runtime::{HostTensor, Tolerance};

/// A size that a kernel is built for.
#[derive(Clone, Copy, Debug)]
pub struct ShapeKey {
    /// Its name: `--shape rows=32`.
    pub name: &'static str,
    /// Its value if none is given.
    pub default: i64,
    /// What it means.
    pub about: &'static str,
}

/// A kernel of the library.
#[derive(Clone, Copy, Debug)]
pub struct KernelEntry {
    /// Its name.
    pub name: &'static str,
    /// One line about it.
    pub about: &'static str,
    /// The sizes it is built for.
    pub shape: &'static [ShapeKey],
    /// The dtypes it is built for, the usual one first.
    pub dtypes: &'static [DType],
    /// Builds it for a target.
    pub build: fn(&Config, Target) -> Kernel,
    /// Which of the sizes are known only at launch: parameters of the kernel with the same name.
    pub run_time: fn(&Config) -> &'static [&'static str],
    /// Makes inputs.
    pub inputs: fn(&Config) -> Vec<HostTensor>,
    /// What it computes, in plain Rust.
    pub reference: fn(&Config, &[HostTensor]) -> Vec<HostTensor>,
    /// How far results may be from the reference.
    pub tolerance: fn(&Config) -> Tolerance,
    /// Configurations that tests run in addition to the default one: a dtype and sizes.
    pub tested: &'static [(DType, &'static [(&'static str, i64)])],
}

/// What a kernel is built for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The value of every size of the entry, in its order.
    sizes: IndexMap<&'static str, i64>,
    /// Type of an element.
    pub dtype: DType,
}

/// A configuration that a kernel does not support.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// A size that the kernel does not have.
    UnknownSize {
        /// The name that was given.
        given: String,
        /// The names of the kernel's sizes.
        known: Vec<&'static str>,
    },
    /// A size below 1 or above 2^30.
    BadSize {
        /// Its name.
        name: &'static str,
        /// Its value.
        value: i64,
    },
    /// A dtype that the kernel is not built for.
    UnknownDType {
        /// The dtype that was given.
        given: DType,
        /// The dtypes that the kernel is built for.
        known: &'static [DType],
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::UnknownSize { given, known } if known.is_empty() => {
                write!(f, "`{given}` is not a size of this kernel; it has none")
            }
            ConfigError::UnknownSize { given, known } => {
                write!(f, "`{given}` is not a size of this kernel; it has {}", known.join(", "))
            }
            ConfigError::BadSize { name, value } => write!(f, "{name}={value}: a size must be between 1 and 2^30"),
            ConfigError::UnknownDType { given, known } => {
                let known: Vec<&str> = known.iter().map(|dtype| dtype.name()).collect();
                write!(f, "this kernel is not built for {given}; it is built for {}", known.join(", "))
            }
        }
    }
}

impl std::error::Error for ConfigError {}

impl Config {
    /// The value of a size of the entry.
    ///
    /// # Panics
    ///
    /// If the entry has no size of this name.
    #[track_caller]
    pub fn size(&self, name: &str) -> i64 {
        self.sizes[name]
    }

    /// All sizes, in the entry's order.
    pub fn sizes(&self) -> impl Iterator<Item = (&'static str, i64)> {
        self.sizes.iter().map(|(name, value)| (*name, *value))
    }
}

impl fmt::Display for Config {
    /// `b32 rows=4 cols=32`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.dtype)?;
        for (name, value) in &self.sizes {
            write!(f, " {name}={value}")?;
        }
        Ok(())
    }
}

impl KernelEntry {
    /// A configuration: given sizes and dtype, defaults for the rest.
    pub fn config(&self, dtype: Option<DType>, given: &[(String, i64)]) -> Result<Config, ConfigError> {
        let mut sizes: IndexMap<&'static str, i64> = self.shape.iter().map(|key| (key.name, key.default)).collect();
        for (name, value) in given {
            let Some(key) = self.shape.iter().find(|key| key.name == name.as_str()) else {
                let known = self.shape.iter().map(|key| key.name).collect();
                return Err(ConfigError::UnknownSize { given: name.clone(), known });
            };
            // Some sizes are 0 unless they are given.
            if *value != key.default && !(1..=1 << 30).contains(value) {
                return Err(ConfigError::BadSize { name: key.name, value: *value });
            }
            sizes.insert(key.name, *value);
        }
        let dtype = dtype.unwrap_or(self.dtypes[0]);
        if !self.dtypes.contains(&dtype) {
            return Err(ConfigError::UnknownDType { given: dtype, known: self.dtypes });
        }
        Ok(Config { sizes, dtype })
    }

    /// The values of the sizes that are known only at launch.
    pub fn sizes(&self, config: &Config) -> Vec<(&'static str, i64)> {
        (self.run_time)(config).iter().map(|name| (*name, config.size(name))).collect()
    }

    /// The configurations that tests run: the default one and those of the entry.
    pub fn tested_configs(&self) -> Result<Vec<Config>, ConfigError> {
        let listed = self.tested.iter().map(|(dtype, sizes)| {
            let sizes: Vec<(String, i64)> = sizes.iter().map(|(name, value)| (name.to_string(), *value)).collect();
            self.config(Some(*dtype), &sizes)
        });
        std::iter::once(self.config(None, &[])).chain(listed).collect()
    }
}
