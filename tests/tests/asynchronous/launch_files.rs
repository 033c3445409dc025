//! The kernels as launch files, as `cargo xtask vgpu` reads them.

use std::path::Path;

use serde_json::{Value, json};
use tilewright::vgpu::launch_file::{Array, ElementType, LaunchFile};
use tilewright::vgpu::{Arg, BufferId, Im2col, MapAccess, MapElement, MapSwizzle, Module, Options, TensorMap, run};

use super::case::{Case, floats};

impl Case {
    /// Writes the PTX, the launch file and its arrays into a folder, named after the kernel.
    pub(crate) fn write(&self, folder: &Path, ptx: &str) {
        let name = |id: BufferId| self.memory.buffers().find(|(known, _)| *known == id).expect("the buffer").1;
        let array =
            |file: &str, array: &Array| std::fs::write(folder.join(file), array.to_file()).expect("it is written");
        let mut buffers = serde_json::Map::new();
        for (id, name) in self.memory.buffers() {
            let bytes = self.memory.bytes(id);
            let source = if self.memory.is_written(id, 0) {
                let file = format!("{name}.npy");
                array(&file, &Array::of_bytes(bytes.to_vec()));
                json!({"npy": file})
            } else {
                json!({"poison": {"dtype": "u8", "shape": [bytes.len()]}})
            };
            buffers.insert(name.to_string(), source);
        }
        let args: Vec<Value> = self.args.iter().map(|arg| self.arg(arg, &name)).collect();
        let (result, want) = (name(self.results.0), floats(self.results.1.iter().copied()));
        array("want.npy", &Array { dtype: ElementType::F32, shape: vec![want.len() / 4], bytes: want });
        let mut file = json!({
            "kernel": self.entry,
            "grid": self.grid,
            "block": [self.threads, 1, 1],
            "cluster": [self.cluster, 1, 1],
            "buffers": buffers,
            "args": args,
            "expect": [{"buffer": result, "dtype": "f32", "npy": "want.npy"}],
        });
        if let Some(resident) = self.resident {
            file["sms"] = json!(resident);
            file["ctas_per_sm"] = json!(1);
        }
        std::fs::write(folder.join("launch.json"), file.to_string()).expect("it is written");
        std::fs::write(folder.join("kernel.ptx"), ptx).expect("it is written");
    }

    fn arg<'a>(&'a self, arg: &Arg, name: &impl Fn(BufferId) -> &'a str) -> Value {
        match arg {
            Arg::Buffer { buffer, byte_offset } => json!({"buffer": name(*buffer), "byte_offset": byte_offset}),
            Arg::Bytes(bytes) => json!({"bytes": bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()}),
            Arg::TensorMap(map) => {
                let (buffer, offset) = self.memory.buffer_at(map.address).expect("a buffer");
                json!({"tensor_map": map_json(map, name(buffer), offset)})
            }
        }
    }
}

fn map_json(map: &TensorMap, buffer: &str, offset: u64) -> Value {
    let mut found = json!({
        "buffer": buffer,
        "byte_offset": offset,
        "dtype": match map.element {
            MapElement::U8 => "u8",
            MapElement::F32 => "f32",
            MapElement::Bf16 => "bf16",
            other => panic!("{other:?}"),
        },
        "dims": map.dims,
        "strides_bytes": map.strides,
        "element_strides": map.element_strides,
        "swizzle": match map.swizzle {
            MapSwizzle::None => "none",
            MapSwizzle::B128 => "128B",
            other => panic!("{other:?}"),
        },
        "interleave": "none",
        "oob_fill": if map.fills_nan { "nan" } else { "zero" },
    });
    match &map.access {
        MapAccess::Tiled(sides) => found["box"] = json!(sides),
        MapAccess::Im2col(Im2col { lower, upper, channels, pixels }) => {
            found["im2col"] = json!({"lower": lower, "upper": upper, "channels": channels, "pixels": pixels});
        }
    }
    found
}

/// Whether the files in a folder say what the case says.
pub(crate) fn is_right_from(folder: &Path) -> bool {
    let read = |file: &str| std::fs::read_to_string(folder.join(file)).expect("it is there");
    let module = Module::parse(&read("kernel.ptx")).unwrap_or_else(|error| panic!("{error}"));
    let file = LaunchFile::parse(&read("launch.json"), folder, &module, 1 << 30);
    let file = file.unwrap_or_else(|error| panic!("{error}"));
    let mut memory = file.memory.clone();
    let options = file.options(Options::default());
    run(&module, &file.launches[0], &mut memory, &options).unwrap_or_else(|error| panic!("{error}"));
    file.unwritten(&memory).is_none() && file.difference(&memory).is_none()
}
