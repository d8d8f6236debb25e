// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Draws charts, each an SVG file.
//!
//! ```text
//! charts CHARTS.json DIRECTORY
//! ```
//!
//! The first is a list of charts as `chart.rs` has them; `tools/lab/bench_report.py` writes it.

mod bars;
mod chart;
mod lines;

use std::error::Error;
use std::fs::{self, File};
use std::path::Path;

use plotters::prelude::*;

use crate::chart::{Chart, Shape};

/// In pixels.
const SIZE: (u32, u32) = (1000, 520);

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [charts, directory] = &arguments[..] else {
        return Err("wants CHARTS.json DIRECTORY".into());
    };
    let charts: Vec<Chart> = serde_json::from_reader(File::open(charts)?)?;
    fs::create_dir_all(directory)?;
    for chart in &charts {
        draw(
            chart,
            &Path::new(directory).join(format!("{}.svg", chart.name)),
        )?;
    }
    Ok(())
}

fn draw(chart: &Chart, path: &Path) -> Result<(), Box<dyn Error>> {
    let root = SVGBackend::new(path, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    match &chart.shape {
        Shape::Bars { groups, goals } => bars::draw(chart, groups, goals, &root)?,
        Shape::Lines { along, positions } => lines::draw(chart, along, positions, &root)?,
    }
    root.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text of a chart's file.
    fn drawn(json: &str) -> String {
        let chart: Chart = serde_json::from_str(json).unwrap();
        let name = format!("charts-{}-{}.svg", std::process::id(), chart.name);
        let path = std::env::temp_dir().join(name);
        draw(&chart, &path).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        fs::remove_file(&path).unwrap();
        text
    }

    #[test]
    fn bars_have_their_names_and_goals() {
        let text = drawn(
            r#"{"name": "bars", "title": "A title", "unit": "ratio",
                "series": [{"name": "ours", "values": [0.5, 0.9]}, {"name": "C", "values": [1.0, null]}],
                "shape": {"bars": {"groups": ["read", "write"], "goals": [0.8, null]}}}"#,
        );
        for word in ["A title", "ratio", "read", "write", "ours", "goal"] {
            assert!(text.contains(word), "{word} is not in the chart");
        }
    }

    #[test]
    fn lines_stand_at_their_positions() {
        let text = drawn(
            r#"{"name": "lines", "title": "Growth", "unit": "instructions",
                "series": [{"name": "ours", "values": [10.0, 20.0, 80.0]}],
                "shape": {"lines": {"along": "connections", "positions": [1, 8, 64]}}}"#,
        );
        assert!(text.contains("connections") && text.contains("64") && text.contains("ours"));
    }
}
