// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! What is drawn.

use plotters::style::RGBColor;
use serde::Deserialize;

/// A chart: several series of values of one unit.
#[derive(Deserialize)]
pub(crate) struct Chart {
    /// Of the file, without what follows the dot.
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) unit: String,
    pub(crate) series: Vec<Series>,
    pub(crate) shape: Shape,
}

/// Values in the order of the groups or positions; none where nothing was measured.
#[derive(Deserialize)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) values: Vec<Option<f64>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Shape {
    /// Groups of bars beside each other, each group with a goal, or none.
    Bars {
        groups: Vec<String>,
        goals: Vec<Option<f64>>,
    },
    /// Lines over positions that double, or the like.
    Lines { along: String, positions: Vec<u32> },
}

/// Told apart by people who see colours differently, too.
pub(crate) const COLOURS: [RGBColor; 4] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(153, 153, 153),
    RGBColor(0, 158, 115),
];
pub(crate) const GOAL: RGBColor = RGBColor(213, 94, 0);

impl Chart {
    /// More than the largest of these and the chart's values, with room for the names of the series
    /// above them.
    pub(crate) fn top(&self, others: impl Iterator<Item = f64>) -> f64 {
        let values = self
            .series
            .iter()
            .flat_map(|series| series.values.iter().flatten().copied());
        1.3 * values.chain(others).fold(f64::MIN_POSITIVE, f64::max)
    }
}
